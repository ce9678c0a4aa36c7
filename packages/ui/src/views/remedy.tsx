import { useStore } from '../context.ts'
import type { ModelRow } from '../model-rows.ts'
import { Button } from '../parts/button.tsx'
import { formatPlace } from '../place.ts'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'

const T = TEXTS.model

interface RemedyProps {
  readonly row: ModelRow
  /** Among others, with a link to it. */
  readonly isNamed?: boolean
}

/** What makes a model whole that is damaged or incomplete, or is none. */
export function Remedy({ row: { ref, repo, member }, isNamed }: RemedyProps) {
  const { attempt, bridge } = useStore()
  const { complete, damaged, malformed, origin } = member
  if (complete && malformed === undefined) return null
  // nobody else has what its owner made
  const isOwn = origin === undefined || origin.kind === 'local'
  const isAgain = malformed !== undefined || (isOwn && damaged === true)
  const text = malformed !== undefined ? T.malformed(malformed.join(', ')) : T.remedy(damaged === true, isOwn)
  return (
    <div class="remedy">
      <p>
        {isNamed && (
          <>
            <a href={formatPlace({ view: 'models', model: ref })}>{ref}</a>:{' '}
          </>
        )}
        {text}
      </p>
      {isAgain ? (
        <a class="button main" href={formatPlace({ view: 'get', as: repo })}>
          {T.importAgain}
        </a>
      ) : (
        <Button text={T.complete} look="main" does={() => attempt(() => bridge.ensure(ref), started)} />
      )}
    </div>
  )
}
