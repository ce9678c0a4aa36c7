import type { ComponentChildren } from 'preact'

/** A block of a text in Markdown. */
type MarkdownBlock =
  | { readonly kind: 'heading' | 'paragraph'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'list'; readonly items: readonly string[] }

/** Longer texts are cut: a browser lays them all out. */
const MAX_LINES = 2_000
const MAX_CHARS = 200_000

/** The blocks of a text: headings, code, lists, and paragraphs of what is left. Tags of HTML are left out. */
export function blocksOf(text: string): readonly MarkdownBlock[] {
  const blocks: MarkdownBlock[] = []
  const lines = text.slice(0, MAX_CHARS).split(/\r?\n/, MAX_LINES)
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!
    const fence = /^\s*(```|~~~)/.exec(line)?.[1]
    if (fence !== undefined) {
      const end = lines.findIndex((each, i) => i > at && each.trim().startsWith(fence))
      const last = end < 0 ? lines.length : end
      blocks.push({ kind: 'code', text: lines.slice(at + 1, last).join('\n') })
      at = last + 1
      continue
    }
    const [kind, end] = runOf(lines, at)
    const run = lines.slice(at, end)
    if (kind === 'list') blocks.push({ kind, items: run.map((each) => plain(each.replace(ITEM, ''))) })
    else if (kind === 'table') blocks.push({ kind: 'code', text: run.join('\n') })
    else {
      const joined = plain(run.join(' ').replace(HEADING, ''))
      if (joined !== '') blocks.push({ kind, text: joined })
    }
    at = end
  }
  return blocks
}

const HEADING = /^#{1,6}\s+/
const ITEM = /^\s*(?:[-*+]|\d{1,3}[.)])\s+/

/** What the line at `start` begins, and the line after its end. */
function runOf(lines: readonly string[], start: number): readonly ['heading' | 'paragraph' | 'list' | 'table', number] {
  const kindOf = (line: string): 'heading' | 'list' | 'table' | 'blank' | 'paragraph' => {
    if (line.trim() === '') return 'blank'
    if (HEADING.test(line)) return 'heading'
    return ITEM.test(line) ? 'list' : line.trimStart().startsWith('|') ? 'table' : 'paragraph'
  }
  const kind = kindOf(lines[start]!)
  if (kind === 'heading' || kind === 'blank') return [kind === 'blank' ? 'paragraph' : kind, start + 1]
  const end = lines.findIndex((line, i) => i > start && kindOf(line) !== kind)
  return [kind, end < 0 ? lines.length : end]
}

/** Without tags and pictures. Each part is bounded, so that no text takes quadratic time. */
const plain = (text: string): string =>
  text
    .replace(/!\[[^[\]]{0,500}\]\([^()]{0,2000}\)/g, '')
    .replace(/<\/?[a-z!][^<>]{0,500}>/gi, '')
    .trim()

const INLINE = /`([^`]{1,2000})`|\*\*([^*]{1,2000})\*\*|\[([^[\]]{1,500})\]\((https?:\/\/[^)\s]{1,2000})\)/g

/** Code, strong words and links; everything else as it is. */
function inline(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = []
  let at = 0
  for (const found of text.matchAll(INLINE)) {
    const [whole, code, strong, label, address = ''] = found
    parts.push(text.slice(at, found.index))
    at = found.index + whole.length
    if (code !== undefined) parts.push(<code>{code}</code>)
    else if (strong !== undefined) parts.push(<strong>{strong}</strong>)
    else
      parts.push(
        <a href={address} target="_blank" rel="noreferrer">
          {label}
        </a>
      )
  }
  return [...parts, text.slice(at)]
}

/** A text in Markdown, without anything that a page would load or run. */
export const Markdown = ({ text }: { readonly text: string }) => (
  <div class="markdown">
    {blocksOf(text).map((block, i) => {
      const key = `${i}`
      switch (block.kind) {
        case 'heading':
          return <h4 key={key}>{inline(block.text)}</h4>
        case 'code':
          return <pre key={key}>{block.text}</pre>
        case 'list':
          return (
            <ul key={key}>
              {block.items.map((item) => (
                <li key={item}>{inline(item)}</li>
              ))}
            </ul>
          )
        default:
          return <p key={key}>{inline(block.text)}</p>
      }
    })}
  </div>
)
