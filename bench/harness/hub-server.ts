// Runs the fake hub in a separate process. argv[2]: size of the single file of `bench/model`, which is written to the folder argv[3].
// argv[4]: base URL of the CDN that serves that folder. Sends its own address as an IPC message.
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { contentChunks } from '@svc/testkit/fake-hub-content'

const [sizeBytes, folder, cdn] = [Number(process.argv[2]), process.argv[3]!, process.argv[4]!]
/** Size of the warm-up file: large enough to be fetched in ranges, like the measured one. */
const WARM_UP_BYTES = 40 << 20
const repos = [
  { id: 'bench/model', files: [{ path: 'model-q4_0.gguf', content: { seed: 7, sizeBytes } }] },
  {
    id: 'bench/warm',
    files: [{ path: 'warm-q4_0.gguf', content: { seed: 8, sizeBytes: Math.min(sizeBytes, WARM_UP_BYTES) } }]
  }
]
for (const { path, content } of repos.flatMap(({ files }) => files)) {
  const fd = openSync(join(folder, path), 'wx')
  for (const chunk of contentChunks(content)) writeSync(fd, chunk)
  closeSync(fd)
}
const hub = await startFakeHub({ repos, cdnAddress: (path) => `${cdn}/${path}` })
process.on('disconnect', () => process.exit(0))
process.send!({ endpoint: hub.endpoint })
