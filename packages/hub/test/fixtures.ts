import { createHash } from 'node:crypto'
import { type FakeHub, type FakeHubOptions, startFakeHub } from '@svc/testkit/fake-hub'
import { type FakeHubFaultRule, scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { afterEach } from 'vitest'
import {
  createHub,
  createMemorySink,
  gitBlobSha1,
  type Hub,
  type HubFile,
  type HubOptions,
  type MemorySink
} from '../src/index.ts'

/** Pauses are counted, not waited for. */
export interface Quick {
  readonly waits: number[]
  readonly retry: NonNullable<HubOptions['retry']>
}
export function quick(): Quick {
  const waits: number[] = []
  return {
    waits,
    retry: {
      stallMs: 10_000,
      random: () => 0.5,
      sleep: async (delayMs, signal) => {
        waits.push(delayMs)
        signal?.throwIfAborted()
      }
    }
  }
}

const open: { close(): Promise<void> }[] = []

/** For a file's tests: hubs are closed after each of them. */
export function closeAfterTests(): void {
  afterEach(async () => {
    for (const part of open.splice(0).reverse()) await part.close()
  })
}

export async function fakeHub(options: FakeHubOptions = {}, rules: readonly FakeHubFaultRule[] = []): Promise<FakeHub> {
  const fake = await startFakeHub({ faults: scriptedFaults(rules), ...options })
  open.push(fake)
  return fake
}

export function hubOf(fake: FakeHub, options: HubOptions = {}): Hub {
  const hub = createHub({ endpoint: fake.endpoint, ...options, retry: { ...quick().retry, ...options.retry } })
  open.push(hub)
  return hub
}

export async function fileOf(hub: Hub, repo: string, path: string): Promise<HubFile> {
  const file = (await hub.listing(repo)).files.find((one) => one.path === path)
  if (!file) throw new Error(`no ${path}`)
  return file
}

/** True when the sink holds what the listing names. */
export const isRight = (file: HubFile, sink: MemorySink): boolean =>
  file.sha256 === undefined
    ? gitBlobSha1(sink.bytes) === file.gitBlobSha1
    : `sha256:${createHash('sha256').update(sink.bytes).digest('hex')}` === file.sha256

export { createMemorySink }
