"""Settings of the frameworks before their import.

Law: litellm reads its table of models from the package, not from the network.
"""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
