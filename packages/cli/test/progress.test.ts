import type { Job } from '@svc/client'
import { printable } from '@svc/internal-terminal'
import { expect, it } from 'vitest'
import { formatBytes, formatSeconds } from '../src/format.ts'
import { barProgress, describe as describeJob, lineProgress } from '../src/progress.ts'
import { Captured } from './support.ts'

const job = (more: Partial<Job>): Job => ({
  id: 'a',
  kind: 'import-local',
  ref: 'acme/tiny',
  as: 'acme/tiny',
  state: 'fetching',
  createdAt: '2026-01-01T00:00:00.000Z',
  ...more
})

it('describes a snapshot in one line', () => {
  expect(describeJob(job({ bytesDone: 1 << 20, bytesTotal: 4 << 20, filesDone: 1, filesTotal: 2 }), 1 << 20)).toBe(
    'importing acme/tiny 25% 1.0 MiB of 4.0 MiB 1/2 files 1.0 MiB/s 3s left'
  )
  expect(describeJob(job({ kind: 'verify', ref: 'all', as: undefined as never, state: 'waiting' }), undefined)).toBe(
    'verifying the whole store'
  )
  expect(describeJob(job({ kind: 'ensure', peers: 1, sources: 2, message: 'm' }), undefined)).toContain(
    '1 peer 2 sources (m)'
  )
})

it('writes a plain line every few seconds at most, and at once when the state changes', () => {
  const lines: string[] = []
  let nowMs = 0
  const progress = lineProgress((line) => lines.push(line), { monotonic: () => nowMs })
  for (; nowMs <= 11_000; nowMs += 100) progress.update(job({ bytesDone: nowMs, bytesTotal: 100_000 }))
  expect(lines).toHaveLength(3)
  progress.update(job({ state: 'fetching', bytesDone: 12_000, bytesTotal: 100_000, message: 'waiting for the hub' }))
  expect(lines).toHaveLength(4)
  progress.update(job({ state: 'done' }))
  expect(lines).toHaveLength(4)
  for (const line of lines) expect(line).not.toMatch(/[\u0000-\u001f]/)
})

it('says within 5 s that a source is silent, also at 60 columns', () => {
  let nowMs = 0
  const clock = { monotonic: () => nowMs }
  const lines: string[] = []
  const plain = lineProgress((line) => lines.push(line), clock)
  const screen = new Captured('utf8', 60)
  const bars = barProgress(screen.output, clock)
  const whole = { bytesDone: 50_000, bytesTotal: 100_000, rateBytesPerSecond: 900, filesDone: 0, filesTotal: 1 }
  for (; nowMs <= 5_000; nowMs += 250) for (const shown of [plain, bars]) shown.update(job(whole))
  expect(lines.at(-1)).toMatch(/nothing came for [45]s/)
  expect(lines.at(-1)).not.toContain('left')
  expect(screen.text).toMatch(/nothing came for [45]s/)
  nowMs += 1_000
  plain.update(job({ ...whole, bytesDone: 60_000 }))
  expect(lines.at(-1)).not.toContain('nothing came')
})

it('draws one bar for one file, and one for each of several large ones', () => {
  const MIB = 1024 * 1024
  const drawn = (sizes: readonly number[]): number => {
    const screen = new Captured('utf8', 100)
    const files = sizes.map((bytesTotal, i) => ({ name: `part-${i}.gguf`, bytesDone: MIB, bytesTotal }))
    const bytesTotal = sizes.reduce((sum, size) => sum + size, 0) + MIB
    barProgress(screen.output, { monotonic: () => 1000 }).update(job({ bytesDone: MIB, bytesTotal, files }))
    return screen.text.split('\n').length
  }
  expect(drawn([400 * MIB])).toBe(1)
  expect(drawn([400 * MIB, 300 * MIB])).toBe(3)
  expect(drawn([400 * MIB, MIB])).toBe(1)
})

it.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.0 KiB'],
  [5 * 2 ** 30, '5.0 GiB'],
  [300 * 2 ** 20, '300 MiB']
])('%d bytes are %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text))

it.each([
  [0.4, '0s'],
  [65, '1m 05s'],
  [3725, '1h 02m']
])('%d s are %s', (seconds, text) => expect(formatSeconds(seconds)).toBe(text))

it('keeps control characters from the terminal', () => {
  expect(printable('a\u001b[31m\u202eb\n')).toBe('a\ufffd[31m\ufffdb\ufffd')
})
