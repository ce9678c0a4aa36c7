import { parseDigest } from '@svc/ref'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { testDaemon } from '../../daemon/test/support/daemon.ts'
import type { UpstreamFile, UpstreamRepo } from '../../internal/state/src/upstream-repo.ts'
import { Demand, type WaitingClient } from '../src/demand.ts'
import { HubDemand } from '../src/hub-demand.ts'
import type { RunningFetch, Upstream } from '../src/upstream.ts'

const HOST = '192.0.2.1'
const WEIGHTS: UpstreamFile = {
  name: 'model.gguf',
  sizeBytes: 1_000_000,
  sha256: parseDigest(`sha256:${'ab'.repeat(32)}`),
  gitBlobSha1: undefined,
  isLarge: true
}
const CARD: UpstreamFile = { ...WEIGHTS, name: 'README.md', sizeBytes: 5, isLarge: false }
const REPO: UpstreamRepo = {
  repo: 'acme/model',
  commit: 'a'.repeat(40),
  files: new Map([WEIGHTS, CARD].map((file) => [file.name, file])),
  leftOut: { reasons: new Map(), more: 0 }
}

/** The mirror's way to a hub that answers when the test says so. */
async function world() {
  const clock = new VirtualClock()
  const { running } = await testDaemon()
  const { jobs, store, wanted, log } = running.context
  const config = { allows: () => true, revisions: 'named', bytesPerDay: 1 << 30, timeoutMs: 60_000 } as const
  const demand = new Demand({ jobs, store, wanted, log, clock }, config)
  const answers = { look: pending<UpstreamRepo>(), read: pending<Uint8Array>(), artifact: pending<{ quant: string }>() }
  let asked = 0
  const upstream: Upstream = {
    look: () => {
      asked++
      return answers.look.promise
    },
    read: () => {
      asked++
      return answers.read.promise
    },
    artifactOf: () => {
      asked++
      return answers.artifact.promise
    },
    missingBytesOf: async () => WEIGHTS.sizeBytes,
    bring: async (): Promise<RunningFetch> =>
      jobs.start({ kind: 'import-hf', ref: 'acme/model' }, () => new Promise(() => {})),
    hasBrought: () => false
  }
  return { clock, answers, asked: () => asked, hub: new HubDemand(demand, upstream) }
}

const pending = <T>() => Promise.withResolvers<T>()
const NOT_NOW = { status: 429, code: 'E_RATE_LIMITED', retryAfterSeconds: 2 }
const client = (): WaitingClient => ({
  host: HOST,
  gone: new AbortController().signal,
  sendsNoMore: () => false,
  cut: () => undefined
})

/** The state of a wait after 7,999 ms, and one millisecond later. */
async function outcomes(clock: VirtualClock, work: Promise<unknown>): Promise<readonly [unknown, unknown]> {
  let outcome: unknown = 'waits'
  work.then(
    () => (outcome = 'answered'),
    (error: unknown) => (outcome = error)
  )
  await clock.advance(7_999)
  const before = outcome
  await clock.advance(1)
  return [before, outcome]
}

test('a lookup of more than 8 s continues without its client, which gets a 429', async () => {
  const { clock, answers, asked, hub } = await world()
  const wanted = { repo: 'acme/model', revision: undefined, isBrief: false, host: HOST }
  expect(await outcomes(clock, hub.look(wanted))).toMatchObject(['waits', NOT_NOW])
  answers.look.resolve(REPO)
  expect(await hub.look(wanted)).toBe(REPO)
  expect(asked()).toBe(1)
})

test('if the store has an answer, the hub gets two seconds, and its silence is not an error', async () => {
  const { clock, hub } = await world()
  let found: unknown = 'waits'
  const look = hub.look({ repo: 'acme/model', revision: undefined, isBrief: true, host: HOST }).then((repo) => {
    found = repo
  })
  await clock.advance(1_999)
  expect(found).toBe('waits')
  await clock.advance(1)
  await look
  expect(found).toBeUndefined()
})

test('a small file that takes more than 8 s is read once for all clients that retry', async () => {
  const { clock, answers, asked, hub } = await world()
  expect(await outcomes(clock, hub.small(REPO, CARD, HOST))).toMatchObject(['waits', NOT_NOW])
  const again = hub.small(REPO, CARD, '192.0.2.2')
  const bytes = Buffer.from('hello')
  answers.read.resolve(bytes)
  expect(await again).toEqual(bytes)
  expect(asked()).toBe(1)
})

test('weights whose artifact is unknown after 8 s: the client retries, and the search continues', async () => {
  const { clock, answers, hub } = await world()
  expect(await outcomes(clock, hub.large(REPO, WEIGHTS, client()))).toMatchObject(['waits', NOT_NOW])
  answers.artifact.reject(new Error('the hub is gone'))
  await expect(hub.large(REPO, WEIGHTS, client())).rejects.toMatchObject({ status: 503 })
})
