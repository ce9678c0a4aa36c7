// Twice the clients that may wait at the OCI mirror, or read what arrives, at a time (docs/budgets.md). What was seen is printed, for the
// table.
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { MIB, Node, weights } from '../swarm/nodes.ts'
import { addressOf, ask, digestOf, gated, importing } from './arriving.ts'

const FILES = { 'model-q8_0.gguf': weights(MIB, 71), 'config.json': '{"model_type":"llama"}' }
const BUDGET = 256

/** The status of the answer, as soon as it begins; the connection stays. */
async function begun(address: string, path: string): Promise<number> {
  const [host, port] = address.split(':')
  const socket = connect(Number(port), host)
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  socket.write(`GET /v2/acme/model/${path} HTTP/1.1\r\nHost: ${address}\r\n\r\n`)
  const [head] = (await once(socket, 'data')) as [Buffer]
  return Number(head.toString('latin1').split(' ', 2)[1])
}

test.each(['blobs', 'manifests'])(
  'of 496 clients that wait for %s while a model arrives, 240 get a 429',
  { timeout: 600_000 },
  async (kind) => {
    const seed = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' } })
    const share = await seed.publish(FILES, 'acme/model')
    const gate = await gated(share)
    const node = await importing(gate, share, {})
    // a blob's head comes before its bytes, and a manifest when what it describes is here
    if (kind === 'blobs') {
      gate.open((path) => !path.endsWith('.gguf'))
      expect(await ask(node, 'manifests/q8_0')).toMatchObject({ status: 200 })
    }
    const path = kind === 'blobs' ? `blobs/${digestOf(FILES['model-q8_0.gguf'])}` : 'manifests/q8_0'
    const statuses: number[] = []
    const asking = Array.from({ length: 2 * BUDGET - 16 }, async () => {
      statuses.push(await begun(addressOf(node), path))
    })
    const refused = (): number => statuses.filter((status) => status === 429).length
    await expect.poll(refused, { timeout: 60_000 }).toBe(BUDGET - 16)
    gate.open()
    await Promise.all(asking)
    console.log(
      `twice the budget: of ${asking.length} clients that wait for ${kind} ${refused()} were told to come again`
    )
    expect(refused()).toBe(BUDGET - 16)
    expect(statuses.filter((status) => status === 200)).toHaveLength(BUDGET)
  }
)
