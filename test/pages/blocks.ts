/** A fenced block of a page, with what the HTML comments before it say to its test. */
export interface Block {
  readonly line: number
  readonly language: string
  readonly code: string
  /** Why its commands are not run: `<!-- not run: reason -->`. */
  readonly notRun: string | undefined
  /** Commands that come first and that readers have behind them: `<!-- given: svc import … -->`. */
  readonly given: readonly string[]
  /** What is run in its place, where it elides what another command prints: `<!-- run: command -->`. */
  readonly instead: string | undefined
  /** Whether it is typed on another machine than the block before: `<!-- another machine -->`. */
  readonly isElsewhere: boolean
}

/** The fenced blocks of a Markdown page, in order. */
export function blocksOf(text: string): Block[] {
  return [...text.matchAll(/((?:^<!-- .+ -->\n+)*)^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => {
    const comments = [...(match[1] ?? '').matchAll(/^<!-- (.+) -->$/gm)].map(([, comment]) => comment ?? '')
    const said = (what: string): string[] =>
      comments.filter((comment) => comment.startsWith(what)).map((comment) => comment.slice(what.length))
    return {
      line: text.slice(0, match.index + (match[1] ?? '').length).split('\n').length,
      language: match[2] ?? '',
      code: match[3] ?? '',
      notRun: said('not run: ')[0],
      given: said('given: '),
      instead: said('run: ')[0],
      isElsewhere: comments.includes('another machine')
    }
  })
}
