import { signal } from '@preact/signals'
import type { SearchResult } from '@svc/client/protocol'
import type { JudgedPlan, Meaning } from '../bridge.ts'
import { useStore } from '../context.ts'
import { TEXTS } from '../texts.ts'
import { PlanView } from './plan.tsx'
import { Results } from './results.tsx'
import { SourceForm } from './source-form.tsx'

const T = TEXTS.get

type LookResult =
  | { readonly kind: 'search'; readonly words: string; readonly result: SearchResult }
  | { readonly kind: 'plan'; readonly plan: JudgedPlan }
  | { readonly kind: 'source'; readonly meaning: Exclude<Meaning, { kind: 'hf' | 'unknown' }> }

/** Kept while other views show. */
const text = signal('')
const found = signal<LookResult | undefined>(undefined)
const before = signal<LookResult | undefined>(undefined)
const isBusy = signal(false)

export function GetView() {
  const { attempt, bridge } = useStore()
  const look = async (): Promise<void> => {
    const typed = text.value.trim()
    if (typed === '' || isBusy.value) return
    isBusy.value = true
    before.value = undefined
    found.value = await attempt(() => lookAt(typed))
    isBusy.value = false
  }
  const lookAt = async (typed: string): Promise<LookResult> => {
    const meaning = await bridge.meaning(typed)
    // a word alone could be a repository without an owner, but is looked for
    if (meaning.kind === 'hf' && typed.includes('/')) return { kind: 'plan', plan: await bridge.plan(typed) }
    if (meaning.kind === 'hf' || meaning.kind === 'unknown')
      return { kind: 'search', words: typed, result: await bridge.search(typed) }
    return { kind: 'source', meaning }
  }
  const choose = async (repo: string): Promise<void> => {
    isBusy.value = true
    const plan = await attempt(() => bridge.plan(repo))
    isBusy.value = false
    if (plan === undefined) return
    before.value = found.value
    found.value = { kind: 'plan', plan }
  }
  const more = async ({ words, result }: Extract<LookResult, { kind: 'search' }>): Promise<void> => {
    const next = await attempt(() => bridge.search(words, result.next))
    if (next === undefined) return
    found.value = { kind: 'search', words, result: { ...next, entries: [...result.entries, ...next.entries] } }
  }
  return (
    <>
      <form
        class="toolbar"
        onSubmit={(event) => {
          event.preventDefault()
          void look()
        }}
      >
        <label class="wide-field">
          <span>{T.label}</span>
          <input
            type="search"
            value={text.value}
            placeholder={T.placeholder}
            onInput={(event) => {
              text.value = event.currentTarget.value
            }}
          />
        </label>
        <button type="submit" class="main" aria-busy={isBusy.value}>
          {T.go}
        </button>
      </form>
      <p role="status" class={isBusy.value ? 'hint' : 'unseen'}>
        {isBusy.value && TEXTS.loading}
      </p>
      {before.value !== undefined && (
        <button
          type="button"
          class="link"
          onClick={() => {
            found.value = before.value
            before.value = undefined
          }}
        >
          ← {T.back}
        </button>
      )}
      <FoundView found={found.value} onChoose={(repo) => void choose(repo)} onMore={(of) => void more(of)} />
    </>
  )
}

interface FoundProps {
  readonly found: LookResult | undefined
  readonly onChoose: (repo: string) => void
  readonly onMore: (of: Extract<LookResult, { kind: 'search' }>) => void
}

function FoundView({ found, onChoose, onMore }: FoundProps) {
  if (found === undefined)
    return (
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
    )
  switch (found.kind) {
    case 'search':
      return <Results result={found.result} onChoose={onChoose} onMore={() => onMore(found)} />
    case 'plan':
      return <PlanView key={`${found.plan.repo} ${found.plan.commit}`} plan={found.plan} />
    default:
      return <SourceForm key={JSON.stringify(found.meaning)} meaning={found.meaning} />
  }
}
