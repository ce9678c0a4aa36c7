import type { ErrorCode } from '@svc/client/protocol'
import type { BridgeError } from '../bridge.ts'
import { Button } from '../parts/button.tsx'
import { formatPlace } from '../place.ts'
import { TEXTS } from '../texts.ts'
import { LoginForm } from './login-form.tsx'

const T = TEXTS.jobs

interface RefusalProps {
  readonly error: BridgeError
  /** What was looked for. */
  readonly words: string
  readonly onAgain: () => unknown
}

/** Why the hub, or the daemon, refused what was asked for, and what to do. */
export function RefusalView({ error: { code, message }, words, onAgain }: RefusalProps) {
  const advice = T.advice[code as ErrorCode]
  const [, name = words] = words.split('/')
  return (
    <section class="card refusal" aria-label={T.refused}>
      <p class="failure" role="alert">
        {message}
      </p>
      {advice !== undefined && <p class="advice">{advice}</p>}
      {code === 'E_SOURCE_FORBIDDEN' && <LoginForm message={message} onLogin={onAgain} />}
      <div class="actions">
        {/* to strangers, the hub does not tell what is absent from what is not for them */}
        {(code === 'E_UNKNOWN_REF' || code === 'E_SOURCE_FORBIDDEN') && (
          <a class="button" href={formatPlace({ view: 'get', text: name.replace(/[:@].*/, '') })}>
            {T.search}
          </a>
        )}
        <Button text={T.again} does={onAgain} />
      </div>
    </section>
  )
}
