import { hash } from 'node:crypto'

const CHUNK = Buffer.alloc(1 << 20, 7)
const CHUNKS = 192

/**
 * CPU seconds that the SHA-256 of a gigabyte takes, now: 0.68 on the machine that targets in CPU seconds were set on. From hour to hour one
 * virtual machine's differs by a tenth and more, so it is measured beside the rows that have such targets.
 */
export function hashCost(): number {
  const before = process.cpuUsage()
  for (let each = 0; each < CHUNKS; each += 1) hash('sha256', CHUNK, 'binary')
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6 / ((CHUNK.length * CHUNKS) / 1e9)
}

/** What such a figure would be on that machine. */
export const atReference = (cpuSeconds: number, cost: number): number => (cpuSeconds * REFERENCE) / cost
const REFERENCE = 0.68
