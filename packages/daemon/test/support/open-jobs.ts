import { isTerminal } from '@svc/client/protocol'
import { expect } from 'vitest'
import type { JobRegistry } from '../../src/jobs/registry.ts'

/** What a registry counts as open is what it lists as such. */
export function expectOpenCounted(jobs: JobRegistry): void {
  const open = jobs.list().filter((job) => !isTerminal(job))
  expect(jobs.openCount).toBe(open.length)
  expect(jobs.list().length - open.length).toBeLessThanOrEqual(jobs.ended.done + jobs.ended.failed)
}
