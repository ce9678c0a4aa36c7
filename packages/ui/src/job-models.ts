import type { Job } from '@svc/client/protocol'
import type { ModelRow } from './model-rows.ts'
import { nameOf } from './store.ts'

/** The models of a job that are here. */
export function rowsOfJob(job: Job, rows: readonly ModelRow[]): readonly ModelRow[] {
  const name = nameOf(job)
  const made = job.result?.manifests
  return rows.filter(
    ({ ref, repo, member }) => ref === name || (repo === name && (made === undefined || made.includes(member.manifest)))
  )
}
