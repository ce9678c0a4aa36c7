// Readers that ask for a blob, read nothing and leave: the memory that the daemon held for them goes back to the system.

import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { startSeedingProcess } from '../support/seeding-process.ts'

const READERS = 200
/** The growth of heap and caches meanwhile. */
const TOLERANCE_MIB = 64

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

test(`three times ${READERS} clients that read nothing: their memory is freed`, { timeout: 300_000 }, async () => {
  const { daemon, digest, rssMiB, ref } = await startSeedingProcess({ sizeBytes: 64 << 20 })
  const before = rssMiB()
  const rows: number[][] = []
  for (let round = 0; round < 3; round += 1) {
    const readers = await Promise.all(
      Array.from({ length: READERS }, async () => {
        const socket = connect(daemon.socketPath)
        socket.on('error', () => undefined).pause()
        await once(socket, 'connect')
        socket.write(`GET /v1/blob/${digest} HTTP/1.1\r\nHost: x\r\n\r\n`)
        return socket
      })
    )
    await Promise.all(readers.map((socket) => once(socket, 'readable')))
    await delay(2_000)
    const during = rssMiB()
    for (const socket of readers) socket.destroy()
    await delay(2_000)
    expect((await daemon.resolve(ref)).status).toBe(200)
    rows.push([during, rssMiB()])
  }
  const said = rows.map(
    ([during, after]) => `${Math.round(during!)} while they were there, ${Math.round(after!)} after`
  )
  console.log(`RSS in MiB: ${Math.round(before)} before; ${said.join('; ')}`)
  for (const [, after] of rows) expect(after).toBeLessThan(before + TOLERANCE_MIB)
})
