import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@svc/internal-clock'
import { processStart, thisMachine } from '@svc/internal-files'
import { expect, it, onTestFinished } from 'vitest'
import { LeaseFile, ReaderLeases } from '../src/index.ts'

const [ONE, TWO] = [`sha256:${'01'.repeat(32)}`, `sha256:${'02'.repeat(32)}`]
const isKept = (leases: ReaderLeases, digest = ONE): Promise<boolean> =>
  leases.removing(digest, async (isKept) => isKept())

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-leases-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

it('a lease keeps what it names until it is closed', async () => {
  const root = temporaryFolder()
  const leases = new ReaderLeases(root, systemClock)
  const lease = new LeaseFile(root)
  await lease.keep([ONE])
  expect(await isKept(leases)).toBe(true)
  expect(await isKept(leases, TWO)).toBe(false)
  await lease.keep([TWO, ONE])
  expect(await isKept(leases, TWO)).toBe(true)
  lease.close()
  expect(await isKept(leases)).toBe(false)
  leases.close()
})

it('a blob that is being removed is waited for, and its removal sees no lease that came before', async () => {
  const root = temporaryFolder()
  const leases = new ReaderLeases(root, systemClock)
  const over = Promise.withResolvers<void>()
  const lease = new LeaseFile(root, { monotonic: () => 0, sleep: () => over.promise })
  const steps: string[] = []
  let kept: Promise<void> | undefined
  await leases.removing(ONE, async (isKept) => {
    expect(isKept()).toBe(false)
    kept = lease.keep([ONE]).then(() => void steps.push('kept'))
    await new Promise(setImmediate)
    steps.push('removed')
  })
  over.resolve()
  await kept
  expect(steps).toEqual(['removed', 'kept'])
  lease.close()
  leases.close()
})

it('a lease of a process that is gone, or had another start, counts for nothing, and goes', async () => {
  const root = temporaryFolder()
  mkdirSync(join(root, 'leases'))
  const start = processStart(process.pid)!
  for (const name of [`${process.pid}.1.00000000`, `4194304.${start}.00000000`])
    writeFileSync(join(root, 'leases', name), `${thisMachine()}\n${ONE}\n`)
  const leases = new ReaderLeases(root, systemClock)
  expect(await isKept(leases)).toBe(false)
  expect(readdirSync(join(root, 'leases'))).toEqual(['removing'])
  leases.close()
})

it('a lease of another machine counts for a day', async () => {
  const root = temporaryFolder()
  mkdirSync(join(root, 'leases'))
  const path = join(root, 'leases', '17.5.00000000')
  writeFileSync(path, `elsewhere\n${ONE}\n`)
  const { mtimeMs } = statSync(path)
  const now = new ReaderLeases(root, { now: () => mtimeMs + 1 })
  expect(await isKept(now)).toBe(true)
  const later = new ReaderLeases(root, { now: () => mtimeMs + 25 * 3600_000 })
  expect(await isKept(later)).toBe(false)
  for (const each of [now, later]) each.close()
})

it('a store that this process does not see is not made, and nothing there is kept', async () => {
  const root = join(temporaryFolder(), 'outside')
  const lease = new LeaseFile(root)
  await lease.keep([ONE])
  lease.close()
  expect(existsSync(root)).toBe(false)
})
