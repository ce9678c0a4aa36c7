import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { BlockLog } from '../src/block-log.ts'

function record(kind: 'W' | 'F', offset = 0, bytes = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(13)
  head.write(kind)
  head.writeBigUInt64LE(BigInt(offset), 1)
  head.writeUInt32LE(bytes.length, 9)
  return Buffer.concat([head, bytes])
}

test('writes flushed before the cut survive, later ones in part, those after the cut never', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-block-log-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [log, base, cut] = ['log', 'base', 'cut'].map((name) => join(folder, name)) as [string, string, string]
  const records = [
    record('W', 0, Buffer.alloc(4096, 'a')),
    record('F'),
    record('W', 4096, Buffer.alloc(8192, 'b')),
    record('W', 0, Buffer.alloc(4096, 'c')),
    record('F')
  ]
  writeFileSync(log, Buffer.concat(records))
  const positions = records.map((_, n) => Buffer.concat(records.slice(0, n + 1)).length)
  writeFileSync(base, Buffer.alloc(12_288, '.'))
  const letters = (bytes: Buffer): string =>
    [0, 4096, 8192].map((at) => String.fromCharCode(bytes[at]!, bytes[at + 4095]!)).join(' ')
  const blocks = new BlockLog(log, base)
  onTestFinished(() => blocks.close())
  function outcomes(random: () => number): string {
    writeFileSync(cut, readFileSync(base))
    blocks.cutInto(cut, random)
    return letters(readFileSync(cut))
  }

  blocks.advanceTo(positions[0]! - 1)
  expect(outcomes(() => 0.99)).toBe('.. .. ..')
  blocks.advanceTo(positions[0]!)
  expect(letters(readFileSync(base))).toBe('.. .. ..')
  blocks.advanceTo(positions[3]!)
  expect(letters(readFileSync(base))).toBe('aa .. ..')
  let state = 1
  function random(): number {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  const seen = new Set(Array.from({ length: 500 }, () => outcomes(random)))
  expect([...seen].sort()).toEqual(['aa .. ..', 'aa bb ..', 'aa bb bb', 'cc .. ..', 'cc bb ..', 'cc bb bb'])
  blocks.advanceTo(positions[4]!)
  expect(outcomes(random)).toBe('cc bb bb')
})
