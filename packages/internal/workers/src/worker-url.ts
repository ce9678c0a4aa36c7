/**
 * The file of a worker that lies beside the module that starts it: `.ts` where sources run as they are, `.js` in a build.
 * `base` is `import.meta.url` of that module, `path` has no extension.
 */
export const workerUrl = (path: string, base: string): URL =>
  new URL(`${path}${base.endsWith('.ts') ? '.ts' : '.js'}`, base)
