"""strands: models of deltafold as models of Strands Agents.

>>> agent = strands.Agent(DeltafoldStrandsModel(deltafold.AnthropicModel(config)))

In: any `deltafold.Model`.  Out: a `strands.models.Model`.

Laws: events have the form of the framework, which is that of Bedrock's Converse. A history of the
framework goes back to the provider as it was received. A failure raises a `deltafold.ModelError`,
which is also the framework's exception if it has one.
"""

from deltafold.integrations.strands.model import DeltafoldStrandsModel

__all__ = ["DeltafoldStrandsModel"]
