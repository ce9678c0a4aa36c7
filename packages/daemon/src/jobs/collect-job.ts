import type { GcBody, Job } from '@svc/client/protocol'
import { type CollectDeps, collect } from '@svc/library/parts'
import type { JobRegistry } from './registry.ts'

export interface CollectJobDeps extends Omit<CollectDeps, 'running'> {
  readonly jobs: JobRegistry
}

/** POST /v1/gc */
export function startCollection(
  { dryRun = false, graceSeconds, views, leftovers, beforeOlderThanSeconds }: GcBody,
  deps: CollectJobDeps
): Job {
  const options = {
    dryRun,
    graceMs: inMs(graceSeconds),
    views,
    leftovers,
    tagsOlderThanMs: inMs(beforeOlderThanSeconds)
  }
  return deps.jobs.start({ kind: 'gc', ref: 'all', dryRun }, async (work) => ({
    result: await collect(options, { ...deps, running: deps.jobs }, work)
  }))
}

const inMs = (seconds: number | undefined): number | undefined => seconds && seconds * 1000
