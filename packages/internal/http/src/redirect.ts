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

/**
 * Where an answer sends its reader; undefined if it is not a redirect. A redirect leads to http or https, never from https to http, and names
 * no credentials. @throws RedirectError
 */
export function redirectTarget(from: URL, status: number, location: string | undefined): URL | undefined {
  if (!STATUSES.has(status) || location === undefined) return undefined
  const to = URL.parse(location, from.href)
  if (to === null || !['http:', 'https:'].includes(to.protocol) || to.username + to.password !== '')
    throw new RedirectError(from, 'redirects to something that is not a plain http or https URL')
  if (from.protocol === 'https:' && to.protocol === 'http:')
    throw new RedirectError(to, 'redirects to an unencrypted address')
  to.hash = ''
  return to
}
