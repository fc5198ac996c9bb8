"""The worker kit: an ASGI app, handlers that dial out, or both, as a worker that owns shards.

command -> guardian -> process -> Worker: ShardOwner <-> its duty
                                   serving   clients in: gate (stamps) -> line (uvicorn) -> the app
                                   dialling  wants -> runs -> guarded handlers
                                   together  both
                                  stopping: hands everything over, at a pace
                                  triggers: begin that before anybody stops it
"""
