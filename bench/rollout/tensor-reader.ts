// Reads the tensors of a safetensors file from a bucket, in the order of the file, as they come: ADDRESS PREFIX. Begins when it gets a line.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

const [address = '', prefix = ''] = process.argv.slice(2)
const [host, port] = address.split(':')
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

function ask(path: string, range?: readonly [number, number]): Promise<Buffer> {
  const headers = range === undefined ? {} : { range: `bytes=${range[0]}-${range[1] - 1}` }
  return new Promise((resolve, reject) => {
    get({ host, port, path: `/models${path}`, headers, agent }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      answer.on('end', () =>
        answer.statusCode! < 300 ? resolve(Buffer.concat(chunks)) : reject(new Error(`${path}: ${answer.statusCode}`))
      )
    }).on('error', reject)
  })
}

async function listed(): Promise<string> {
  for (;;) {
    const [key] = /[^>]+[.]safetensors(?=<.Key>)/.exec((await ask(`?list-type=2&prefix=${prefix}`)).toString()) ?? []
    if (key !== undefined) return key
    await delay(20)
  }
}

process.stdout.write('ready\n')
await once(process.stdin, 'data')
const begun = performance.now()
const seconds = (): number => (performance.now() - begun) / 1000
const path = `/${await listed()}`
const lengthBytes = await ask(path, [0, 8])
const start = 8 + Number(lengthBytes.readBigUInt64LE())
const header = await ask(path, [8, start])
const hash = createHash('sha256').update(lengthBytes).update(header)
const tensors = Object.values(JSON.parse(header.toString()) as Record<string, { data_offsets: [number, number] }>)
let first = 0
for (const {
  data_offsets: [from, to]
} of tensors) {
  hash.update(await ask(path, [start + from, start + to]))
  first ||= seconds()
}
process.stdout.write(`${JSON.stringify({ first, all: seconds(), sha256: hash.digest('hex') })}\n`)
process.exit()
