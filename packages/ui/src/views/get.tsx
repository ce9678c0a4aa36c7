import { signal } from '@preact/signals'
import type { SearchResult } from '@svc/client/protocol'
import { useEffect } from 'preact/hooks'
import { type BridgeClient, BridgeError, type JudgedPlan, type Meaning } from '../bridge.ts'
import { useStore } from '../context.ts'
import { Button } from '../parts/button.tsx'
import { Empty } from '../parts/empty.tsx'
import { go, leave, type PagePlace, place } from '../place.ts'
import { TEXTS } from '../texts.ts'
import { PlanView } from './plan.tsx'
import { RefusalView } from './refusal.tsx'
import { Results } from './results.tsx'
import { SourceForm } from './source-form.tsx'
import { ToolsSection } from './tools.tsx'

const T = TEXTS.get

type LookResult =
  | { readonly kind: 'search'; readonly words: string; readonly result: SearchResult }
  | { readonly kind: 'plan'; readonly plan: JudgedPlan }
  | { readonly kind: 'refused'; readonly words: string; readonly error: BridgeError }
  | { readonly kind: 'absent'; readonly meaning: Extract<Meaning, { kind: 'absent' }> }
  | { readonly kind: 'source'; readonly meaning: Exclude<Meaning, { kind: 'hf' | 'unknown' | 'absent' }> }

/** Answers that back and forward show again at once. */
const MAX_KEPT = 20
const found = signal<ReadonlyMap<string, LookResult>>(new Map())
/** Kept while other views show. */
const typed = signal('')
const busy = signal<string | undefined>(undefined)

const keyOf = ({ text, repo }: PagePlace): string => (repo === undefined ? `text ${text}` : `repo ${repo}`)

export function GetView() {
  const { attempt, bridge } = useStore()
  const { text, repo, as } = place.value
  const key = keyOf({ view: 'get', text, repo })
  const isAsked = (text ?? repo) !== undefined
  useEffect(() => {
    if (!isAsked) return
    typed.value = text ?? typed.value
    const known = found.value.get(key)
    if (known === undefined || known.kind === 'refused') void look()
  }, [key])
  const look = async (): Promise<void> => {
    busy.value = key
    const words = repo ?? text!
    const result = await attempt(() =>
      refusable(words, repo === undefined ? lookAt(bridge, words) : planOf(bridge, repo))
    )
    if (busy.value === key) busy.value = undefined
    if (result !== undefined) keep(key, result)
  }
  const more = async ({ words, result }: Extract<LookResult, { kind: 'search' }>): Promise<void> => {
    const next = await attempt(() => bridge.search(words, result.next))
    if (next !== undefined)
      keep(key, { kind: 'search', words, result: { ...next, entries: [...result.entries, ...next.entries] } })
  }
  const isBusy = busy.value === key
  return (
    <>
      <SearchForm isBusy={isBusy} onAgain={() => void look()} as={as} />
      <p role="status" class={isBusy ? 'hint' : 'unseen'}>
        {isBusy && TEXTS.loading}
      </p>
      {repo !== undefined && text !== undefined && (
        <Button text={`← ${T.back}`} look="link" does={() => leave({ view: 'get', text })} />
      )}
      {isAsked ? (
        <FoundView
          found={found.value.get(key)}
          as={as}
          onAgain={() => void look()}
          onChoose={(chosen) => go({ view: 'get', text, repo: chosen })}
          onMore={(of) => void more(of)}
        />
      ) : (
        <Start as={as} />
      )}
    </>
  )
}

function keep(key: string, result: LookResult): void {
  const others = [...found.value].filter(([each]) => each !== key)
  found.value = new Map([...others.slice(1 - MAX_KEPT), [key, result]])
}

/** Codes that a person can do something about, other than of the page's own link. */
const OF_THE_PAGE = ['E_FORBIDDEN', 'E_ENDED']

/** What was found; a refusal is an answer, too. */
const refusable = (words: string, found: Promise<LookResult>): Promise<LookResult> =>
  found.catch((error: unknown) => {
    if (!(error instanceof BridgeError) || OF_THE_PAGE.includes(error.code)) throw error
    return { kind: 'refused', words, error }
  })

const planOf = async (bridge: BridgeClient, source: string): Promise<LookResult> => ({
  kind: 'plan',
  plan: await bridge.plan(source)
})

async function lookAt(bridge: BridgeClient, text: string): Promise<LookResult> {
  const meaning = await bridge.meaning(text)
  // a word alone could be a repository without an owner, but is looked for
  if (meaning.kind === 'hf' && text.includes('/')) return planOf(bridge, text)
  if (meaning.kind === 'hf' || meaning.kind === 'unknown')
    return { kind: 'search', words: text, result: await bridge.search(text) }
  return meaning.kind === 'absent' ? { kind: 'absent', meaning } : { kind: 'source', meaning }
}

interface SearchProps {
  readonly isBusy: boolean
  readonly onAgain: () => void
  readonly as: string | undefined
}

function SearchForm({ isBusy, onAgain, as }: SearchProps) {
  const submit = (event: Event): void => {
    event.preventDefault()
    const text = typed.value.trim()
    if (text === '') return
    if (text === place.value.text && place.value.repo === undefined) onAgain()
    else go({ view: 'get', text, as })
  }
  return (
    <form class="toolbar" onSubmit={submit}>
      <label class="wide-field">
        <span>{T.label}</span>
        <input
          type="search"
          value={typed.value}
          placeholder={as === undefined ? T.placeholder : T.pathPlaceholder}
          onInput={(event) => {
            typed.value = event.currentTarget.value
          }}
        />
      </label>
      <button type="submit" class="main" aria-busy={isBusy}>
        {T.go}
      </button>
    </form>
  )
}

/** What can be typed, and what other tools have. */
function Start({ as }: { readonly as: string | undefined }) {
  return (
    <>
      {as !== undefined && <p class="notice">{T.importAs(as)}</p>}
      <dl class="kinds">
        {T.kinds.map(([example, does]) => (
          <div key={example}>
            <dt>
              <code>{example}</code>
            </dt>
            <dd class="hint">{does}</dd>
          </div>
        ))}
      </dl>
      <ToolsSection />
    </>
  )
}

interface FoundProps {
  readonly found: LookResult | undefined
  readonly as: string | undefined
  readonly onAgain: () => void
  readonly onChoose: (repo: string) => void
  readonly onMore: (of: Extract<LookResult, { kind: 'search' }>) => void
}

function FoundView({ found, as, onAgain, onChoose, onMore }: FoundProps) {
  if (found === undefined) return null
  switch (found.kind) {
    case 'search':
      return <Results result={found.result} onChoose={onChoose} onMore={() => onMore(found)} />
    case 'plan':
      return <PlanView key={`${found.plan.repo} ${found.plan.commit}`} plan={found.plan} />
    case 'refused':
      return <RefusalView error={found.error} words={found.words} onAgain={onAgain} />
    case 'absent':
      return <Empty title={T.absent(found.meaning.path)} text={T.above(found.meaning.above)} />
    default:
      return <SourceForm key={JSON.stringify(found.meaning)} meaning={found.meaning} as={as} />
  }
}
