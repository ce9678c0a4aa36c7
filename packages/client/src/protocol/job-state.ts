import type { JobState } from './job.ts'

/** True for `done` and `failed`: a terminal state is final (spec job.2). */
export const isTerminal = (job: { readonly state: JobState }): boolean => job.state === 'done' || job.state === 'failed'
