import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { writeSafetensors } from '../harness/model-files.ts'
import { formatSeconds, formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'
import { Fleet } from '../rollout/fleet.ts'
import { type Machine, on } from '../rollout/network.ts'

const MEGABITS = 100
const TENSOR_BYTES = 4 << 20
const ADDRESS = '127.0.0.1:9000'
const NAME = 'bench/streamed'
const READER = new URL('../rollout/tensor-reader.ts', import.meta.url).pathname
const MAX_RATIO = 1.1
const MAX_FIRST_SECONDS = 1.5

interface Reading {
  /** From the import's request. */
  readonly first: number
  readonly all: number
  readonly sha256: string
}

/** Starts a reader on a machine. @returns begins to read, with what is measured then */
async function readerOn(machine: Machine): Promise<() => Promise<Reading>> {
  const [program = '', ...words] = on(machine)
  const child = spawn(program, [...words, process.execPath, READER, ADDRESS, `${NAME}/`], {
    stdio: ['pipe', 'pipe', 'inherit']
  })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])
  return async () => {
    child.stdin.write('\n')
    if (child.exitCode === null) await once(child, 'close')
    const [, found] = text.split('\n')
    if (found === undefined || found === '') throw new Error('the reader failed')
    return JSON.parse(found) as Reading
  }
}

/** Reading a model through the S3 mirror while it is fetched over a shaped link, against the fetch alone. */
export const streamRow: Row = {
  name: 'stream',
  summary: `reads tensors through the S3 mirror while they are fetched over ${MEGABITS} Mbit/s (Linux, root)`,
  async run({ scratch, profile, say }) {
    const root = await scratch.folder()
    const model = join(root, 'model')
    mkdirSync(model, { mode: 0o700 })
    const { streamBytes } = profile
    const file = writeSafetensors(model, 'model.safetensors', streamBytes, Math.ceil(streamBytes / TENSOR_BYTES))
    const hash = createHash('sha256')
    await pipeline(createReadStream(file), hash)
    /** Each has a publisher of its own, which has given nothing to anybody before, and leaves the order of pieces to who asks. */
    const withFleet = async <T>(work: (fleet: Fleet) => Promise<T>): Promise<T> => {
      const receiverConfig = ['[mirror]', `s3_addr = "${ADDRESS}"`]
      const fleet = await Fleet.start({ root, model, receivers: 1, megabits: MEGABITS, trusted: false, receiverConfig })
      try {
        return await work(fleet)
      } finally {
        await fleet.stop()
      }
    }
    const alone = await withFleet((fleet) => fleet.fetch(0, NAME))
    say(`alone: ${formatSeconds(alone)}`)
    const { fetched, first, all, sha256 } = await withFleet(async (fleet) => {
      const read = await readerOn(fleet.machines[0]!)
      const reading = read()
      return { fetched: await fleet.fetch(0, NAME), ...(await reading) }
    })
    if (sha256 !== hash.digest('hex')) throw new Error('the reader got other bytes')
    return [
      {
        what: `all tensors of ${formatSize(streamBytes)}, in order`,
        ours: formatSeconds(all),
        peer: `${formatSeconds(alone)} to fetch it`,
        ratio: alone / all,
        target: `≤ ${MAX_RATIO} × the fetch alone`,
        met: all <= MAX_RATIO * alone,
        note: `the fetch beside the reader ${formatSeconds(fetched)}; the link takes ${formatSeconds((streamBytes * 8) / (MEGABITS * 1e6))}`
      },
      {
        what: `first tensor, of ${formatSize(TENSOR_BYTES)}`,
        ours: formatSeconds(first),
        peer: '',
        target: '≤ 1.5 s',
        met: first <= MAX_FIRST_SECONDS
      }
    ]
  }
}
