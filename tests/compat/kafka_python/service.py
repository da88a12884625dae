"""What kafka-python's fixtures import and its source package leaves out: a broker that runs already."""


class ExternalService:
    def __init__(self, host, port):
        self.host = host
        self.port = port

    def open(self):
        """Nothing to start."""

    def close(self):
        """Nothing to stop."""


class SpawnedService:
    def __init__(self, *_arguments, **_options):
        raise RuntimeError("these tests are run against a broker that runs already")
