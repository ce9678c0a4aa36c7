import type { Job } from '@svc/client/protocol'
import { type Findings, type VerifyDeps, verify, verifyTarget } from '@svc/library/parts'
import type { JobOutcome } from './job-work.ts'
import type { JobRegistry } from './registry.ts'

/** POST /v1/verify. @throws as `verifyTarget` */
export async function startVerify(text: string, deps: VerifyDeps & { readonly jobs: JobRegistry }): Promise<Job> {
  const target = await verifyTarget(text, deps.resolver)
  return deps.jobs.start({ kind: 'verify', ref: text, target }, async (work) =>
    outcomeOf(await verify(target, deps, work))
  )
}

function outcomeOf({ mismatched, missing, stateErrors }: Findings): JobOutcome {
  if (mismatched.length + missing.length + stateErrors.length === 0) return { verify: {} }
  const counts = [
    mismatched.length > 0 && `${mismatched.length} corrupt (moved to quarantine)`,
    missing.length > 0 && `${missing.length} missing`,
    stateErrors.length > 0 && `${stateErrors.length} state errors`
  ].filter((text) => text !== false)
  return {
    verify: { mismatched: [...mismatched], missing: [...missing], stateErrors: [...stateErrors] },
    error: { code: 'E_VERIFY_FAILED', message: `the store is damaged: ${counts.join(', ')}` }
  }
}
