"""What the codecs of several protocols share: typed reading of fields, and fields that cross between protocols."""
