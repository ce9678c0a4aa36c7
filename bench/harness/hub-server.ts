// The fake hub as a process of its own: argv[2] is the size of the one file of `bench/model`. Its address comes as a message.
import { startFakeHub } from '@svc/testkit/fake-hub'

const hub = await startFakeHub({
  repos: [
    {
      id: 'bench/model',
      files: [{ path: 'model-q4_0.gguf', content: { seed: 7, sizeBytes: Number(process.argv[2]) } }]
    }
  ]
})
process.on('disconnect', () => process.exit(0))
process.send!({ endpoint: hub.endpoint })
