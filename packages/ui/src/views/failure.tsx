import type { ErrorCode, Job } from '@svc/client/protocol'
import { useState } from 'preact/hooks'
import { useStore } from '../context.ts'
import { rowsOfJob } from '../job-models.ts'
import { Button } from '../parts/button.tsx'
import { formatPlace } from '../place.ts'
import { isDownload, isPaused, nameOf, started } from '../store.ts'
import { TEXTS } from '../texts.ts'
import { GarbageDialog } from './garbage.tsx'
import { LoginForm } from './login-form.tsx'
import { Remedy } from './remedy.tsx'

const T = TEXTS.jobs

interface FailureProps {
  readonly job: Job
  readonly error: NonNullable<Job['error']>
}

/** Why a job failed, and what to do about it, with the means to do it. */
export function FailureView({ job, error }: FailureProps) {
  if (isPaused(job) || job.interrupted === true) return <p class="hint">{T.kept}</p>
  const advice =
    job.kind === 'verify' && error.code === 'E_VERIFY_FAILED' ? undefined : T.advice[error.code as ErrorCode]
  return (
    <>
      <p class="failure">
        {error.message} <span class="hint">{error.code}</span>
      </p>
      {advice !== undefined && <p class="advice">{advice}</p>}
      <FailureAction job={job} error={error} />
    </>
  )
}

function FailureAction({ job, error: { code, message } }: FailureProps) {
  const { attempt, bridge, rows } = useStore()
  const [isCollecting, setCollecting] = useState(false)
  switch (code) {
    case 'E_SOURCE_FORBIDDEN':
      return isDownload(job) ? (
        <LoginForm message={message} onLogin={() => attempt(() => bridge.resume(job.id), started)} />
      ) : null
    case 'E_NO_SPACE':
      return (
        <div class="actions">
          <a class="button" href="#models">
            {T.freeModels}
          </a>
          <Button text={TEXTS.models.garbage} does={() => setCollecting(true)} />
          {isCollecting && <GarbageDialog onClose={() => setCollecting(false)} />}
        </div>
      )
    case 'E_UNKNOWN_REF':
      return (
        <div class="actions">
          <a class="button" href={formatPlace({ view: 'get', text: nameOf(job).split('/').at(-1) })}>
            {T.search}
          </a>
        </div>
      )
    case 'E_NOT_IMPORTABLE':
      return job.kind === 'import-local' ? (
        <div class="actions">
          <a class="button" href={formatPlace({ view: 'get', as: nameOf(job) })}>
            {T.anotherFile}
          </a>
        </div>
      ) : null
    case 'E_VERIFY_FAILED':
    case 'E_CORRUPTION': {
      const hurt = job.ref === 'all' ? rows.value : rowsOfJob(job, rows.value)
      return (
        <>
          {hurt
            .filter(({ member }) => !member.complete)
            .map((row) => (
              <Remedy key={row.ref} row={row} isNamed />
            ))}
        </>
      )
    }
    default:
      return null
  }
}
