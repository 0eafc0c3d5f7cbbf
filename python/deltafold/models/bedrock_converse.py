"""The adapter of bedrock-converse: Amazon Bedrock's Converse API."""

from typing import ClassVar

from deltafold.dialects import bedrock_converse
from deltafold.dialects.rendered import DialectModule
from deltafold.models.base import Model
from deltafold.models.config import BedrockConverseConfig, ModelConfig
from deltafold.transports import sdks
from deltafold.transports.sdks import Sdk


class BedrockConverseModel(Model[BedrockConverseConfig]):
    """A model behind Bedrock's Converse API."""

    protocol: ClassVar[DialectModule] = bedrock_converse
    config_class: ClassVar[type[ModelConfig]] = BedrockConverseConfig
    author: ClassVar[str] = "bedrock"
    sdk: ClassVar[Sdk | None] = sdks.BEDROCK
