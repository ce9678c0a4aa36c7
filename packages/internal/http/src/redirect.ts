const STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** A redirect that is not followed. The message has no subject: "redirects to an unencrypted address". */
export class RedirectError extends Error {
  override readonly name = 'RedirectError'
  readonly code = 'ERR_REDIRECT'
  readonly url: URL

  constructor(url: URL, message: string) {
    super(message)
    this.url = url
  }
}

/** An answer that may redirect. */
export interface Redirecting {
  readonly status: number
  header(name: string): string | undefined
  /** Reads what is left of it, so that its connection can be used again. */
  discard(): Promise<void>
  destroy(): void
}

/**
 * The only place that follows redirects. A redirect leads to http or https, never from https to http, and names no credentials; `ask` judges
 * whether its address may be dialled, and decides what is sent there. One without a Location is an answer like others.
 *
 * @param most redirects in a row
 * @param ask requests a URL; undefined ends the walk before it
 * @returns the last answer, or the URL before which the walk ended
 * @throws RedirectError; errors of `ask`
 */
export async function followRedirects<A extends Redirecting>(
  first: URL,
  most: number,
  ask: (url: URL) => Promise<A | undefined>
): Promise<A | URL> {
  let url = first
  for (let hops = 0; ; hops++) {
    const answer = await ask(url)
    if (answer === undefined) return url
    try {
      const next = redirectTarget(url, answer)
      if (next === undefined) return answer
      if (hops === most) throw new RedirectError(next, `redirects to more than ${most} addresses in a row`)
      await answer.discard()
      url = next
    } catch (error) {
      answer.destroy()
      throw error
    }
  }
}

/** Where an answer sends its reader; undefined if it is not a redirect. @throws RedirectError */
function redirectTarget(from: URL, answer: Redirecting): URL | undefined {
  const location = answer.header('location')
  if (!STATUSES.has(answer.status) || location === undefined) return undefined
  const to = URL.parse(location, from.href)
  if (to === null || !['http:', 'https:'].includes(to.protocol) || to.username + to.password !== '')
    throw new RedirectError(from, 'redirects to something that is not a plain http or https URL')
  if (from.protocol === 'https:' && to.protocol === 'http:')
    throw new RedirectError(to, 'redirects to an unencrypted address')
  to.hash = ''
  return to
}
