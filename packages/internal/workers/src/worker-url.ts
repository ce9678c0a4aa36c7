/**
 * The URL of a worker file next to the module that starts it: `.ts` when sources run unbuilt, `.js` in a build. `base`
 * is that module's `import.meta.url`; `path` has no extension.
 */
export const workerUrl = (path: string, base: string): URL =>
  new URL(`${path}${base.endsWith('.ts') ? '.ts' : '.js'}`, base)
