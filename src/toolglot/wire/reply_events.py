from toolglot.reply_events import input_text as input_text
from toolglot.reply_events import of_block as of_block
from toolglot.reply_events import of_reply as of_reply
from toolglot.reply_events import opening as opening
from toolglot.reply_events import spoken as spoken
