/** The variables that say where the hub's own client keeps its token. */
export interface HubTokenEnv {
  readonly HF_TOKEN_PATH?: string | undefined
  readonly HF_HOME?: string | undefined
  readonly XDG_CACHE_HOME?: string | undefined
  readonly HOME?: string | undefined
}

/** The file in which the hub's own client keeps its token, as it finds it; undefined without a home folder. */
export function hubTokenFile(env: HubTokenEnv): string | undefined {
  const given = (value: string | undefined): string | undefined => (value?.startsWith('/') ? value : undefined)
  const home = given(env.HOME)
  const cache = given(env.XDG_CACHE_HOME) ?? (home === undefined ? undefined : `${home}/.cache`)
  const folder = given(env.HF_HOME) ?? (cache === undefined ? undefined : `${cache}/huggingface`)
  return given(env.HF_TOKEN_PATH) ?? (folder === undefined ? undefined : `${folder}/token`)
}
