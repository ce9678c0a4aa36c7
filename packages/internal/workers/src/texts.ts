import { loopBudget } from '@svc/internal-concurrency'

/** A value as the texts of its parts: a long list is cut. */
export type Texts =
  | { readonly list: readonly string[] }
  | { readonly fields: readonly (readonly [string, Texts])[] }
  | { readonly text: string }
  | undefined

/** Read in far less than a turn of the event loop. */
const TEXT_ITEMS = 100

export function textsOf(value: unknown): Texts {
  if (value === undefined) return undefined
  if (Array.isArray(value)) {
    const list: string[] = []
    for (let at = 0; at < value.length; at += TEXT_ITEMS) list.push(JSON.stringify(value.slice(at, at + TEXT_ITEMS)))
    return { list }
  }
  if (typeof value !== 'object' || value === null) return { text: JSON.stringify(value) }
  return { fields: Object.entries(value).map(([key, field]) => [key, textsOf(field)] as const) }
}

/** Inverts {@link textsOf}, in turns of the event loop. */
export async function valueIn(texts: Texts): Promise<unknown> {
  if (texts === undefined) return undefined
  if ('text' in texts) return JSON.parse(texts.text)
  if ('list' in texts) {
    const list: unknown[] = []
    for (const text of texts.list) {
      list.push(...(JSON.parse(text) as unknown[]))
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
    }
    return list
  }
  const fields: [string, unknown][] = []
  for (const [key, field] of texts.fields) {
    fields.push([key, await valueIn(field)])
    if (loopBudget.isOver('lists')) await loopBudget.next('lists')
  }
  return Object.fromEntries(fields)
}
