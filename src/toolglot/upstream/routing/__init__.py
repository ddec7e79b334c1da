"""From the name of a model to the upstream that serves it: names, routes, load balancing, settings of a route."""
