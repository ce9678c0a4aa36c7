// A hub on a line of 50 ms with a repository of 400 files: 12 quants of a large model in 32 shards each, whose first has a vocabulary, and
// small files. Answers an IPC message with the number of requests since the last one.
import { setTimeout as delay } from 'node:timers/promises'
import { type FakeRepoFile, startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf } from '@svc/testkit/models'

const LINE_MS = 50
/** With their `general.file_type`. */
const QUANTS = [
  ['Q2_K', 10],
  ['Q3_K_M', 12],
  ['Q4_0', 2],
  ['Q4_K_S', 14],
  ['Q4_K_M', 15],
  ['Q5_0', 8],
  ['Q5_K_S', 16],
  ['Q5_K_M', 17],
  ['Q6_K', 18],
  ['Q8_0', 7],
  ['IQ4_XS', 30],
  ['BF16', 32]
] as const
const SHARDS = 32
const FILES = 400
const VOCABULARY = Array.from({ length: 128_000 }, (_, i) => `▁token${i}`)

/** @param named whether names tell the quants, or only headers do */
function repository(named: boolean): FakeRepoFile[] {
  const files: FakeRepoFile[] = [{ path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }]
  for (const [i, [quant, fileType]] of QUANTS.entries())
    for (let shard = 1; shard <= SHARDS; shard++) {
      const [number, count] = [shard, SHARDS].map((n) => String(n).padStart(5, '0'))
      const metadata = {
        'general.file_type': fileType,
        'split.no': { u16: shard - 1 },
        'split.count': { u16: SHARDS },
        ...(shard === 1 && { 'tokenizer.ggml.tokens': VOCABULARY })
      }
      const name = named ? quant : `choice-${i}`
      files.push({
        path: `${name}/Model-70B-${name}-${number}-of-${count}.gguf`,
        content: makeGguf({ seed: i * SHARDS + shard, metadata })
      })
    }
  for (let i = files.length; i < FILES; i++)
    files.push({ path: `docs/page-${i}.md`, content: Buffer.from(`page ${i}`) })
  return files
}

const repos = [
  { id: 'bench/named', files: repository(true) },
  { id: 'bench/unnamed', files: repository(false) }
]
const hub = await startFakeHub({ repos })
/** The hub looks at each again after it was held. */
const held = new Set<string>()
let requests = 0
hub.setFaults(({ origin, method, url, headers }) => {
  const request = [origin, method, url, headers.range].join(' ')
  if (held.delete(request)) return undefined
  held.add(request)
  requests++
  return { kind: 'hold', until: delay(LINE_MS) }
})
process.on('disconnect', () => process.exit(0))
process.on('message', () => {
  process.send!(requests)
  requests = 0
})
process.send!({ endpoint: hub.endpoint })
