/** The route that matches a request's path, and the values of its parameters. */
interface RouteMatch<T> {
  readonly route: T
  /** Still percent-encoded. */
  readonly params: Readonly<Record<string, string>>
}

interface Template<T> {
  readonly method: string
  /** Literal segments, or the name of a parameter. */
  readonly segments: readonly { readonly literal?: string; readonly place?: string }[]
  readonly route: T
}

const NONE: Readonly<Record<string, string>> = Object.freeze({})

/**
 * Routes by method and path. Paths are compared byte by byte as they were sent: `%72esolve` does not match `resolve`.
 * `{x}` in a template stands for one non-empty segment.
 */
export class RouteTable<T> {
  readonly #fixed = new Map<string, T>()
  readonly #templates: Template<T>[] = []
  readonly #methods = new Set<string>()

  add(method: string, path: string, route: T): void {
    this.#methods.add(method)
    if (!path.includes('{')) this.#fixed.set(`${method} ${path}`, route)
    else {
      const segments = path.split('/').map((text) => {
        const place = /^\{(\w+)\}$/.exec(text)?.[1]
        return place === undefined ? { literal: text } : { place }
      })
      this.#templates.push({ method, segments, route })
    }
  }

  /** `path` without its query. */
  find(method: string, path: string): RouteMatch<T> | undefined {
    const fixed = this.#fixed.get(`${method} ${path}`)
    if (fixed !== undefined) return { route: fixed, params: NONE }
    const parts = path.split('/')
    for (const template of this.#templates) {
      if (template.method !== method || template.segments.length !== parts.length) continue
      const params = paramsOf(template.segments, parts)
      if (params !== undefined) return { route: template.route, params }
    }
    return undefined
  }

  /** The methods of a path, sorted. */
  methodsOf(path: string): string[] {
    return [...this.#methods].filter((method) => this.find(method, path) !== undefined).sort()
  }
}

function paramsOf(
  segments: Template<unknown>['segments'],
  parts: readonly string[]
): Readonly<Record<string, string>> | undefined {
  const params: Record<string, string> = {}
  for (const [i, { literal, place }] of segments.entries()) {
    const part = parts[i]!
    if (place === undefined ? part !== literal : part === '') return undefined
    if (place !== undefined) params[place] = part
  }
  return params
}
