// The fake hub as a process of its own: argv[2] is the size of the one file of `bench/model`, which is written into the folder argv[3];
// argv[4] is the address where that folder is served, as a CDN. Its own address comes as a message.
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { contentChunks } from '@svc/testkit/fake-hub-content'

const [sizeBytes, folder, cdn] = [Number(process.argv[2]), process.argv[3]!, process.argv[4]!]
/** What the warm-up fetches: large enough to come in ranges, like the other. */
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
