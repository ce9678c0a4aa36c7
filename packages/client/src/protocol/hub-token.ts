/** The variables that say where the hub's own client keeps its token, and those that they name. */
export type HubTokenEnv = Readonly<Record<string, string | undefined>>

/**
 * The file in which the hub's own client keeps its token, as it finds it: with `~` and `$NAME` in a variable replaced.
 * Undefined without a home folder. A relative path is ignored: it would depend on where a program was started.
 */
export function hubTokenFile(env: HubTokenEnv): string | undefined {
  const given = (name: string): string | undefined => {
    const path = env[name]
      ?.replace(/^~(?=\/|$)/, () => env.HOME ?? '~')
      .replace(/\$(?:\{(\w+)\}|(\w+))/g, (text, braced, plain) => env[braced ?? plain] ?? text)
    return path?.startsWith('/') ? path : undefined
  }
  const home = given('HOME')
  const cache = given('XDG_CACHE_HOME') ?? (home === undefined ? undefined : `${home}/.cache`)
  const folder = given('HF_HOME') ?? (cache === undefined ? undefined : `${cache}/huggingface`)
  return given('HF_TOKEN_PATH') ?? (folder === undefined ? undefined : `${folder}/token`)
}
