import { type Client, ClientError, type Inventory } from '@svc/client'
import { tryParseRef } from '@svc/ref'
import { CliError } from '../errors.ts'

/**
 * The daemon's message, written for programs, says that it does not fetch missing models; users are told that the model
 * is not here and how to get it. Unknown tags and digests keep the daemon's message.
 */
function explained(error: unknown, text: string, isWanted: boolean): unknown {
  if (!(error instanceof ClientError)) return error
  const ref = tryParseRef(text)
  if (ref?.quant === undefined || ref.tag !== undefined) return error
  const repo = `${ref.ns}/${ref.name}`
  if (error.code === 'E_UNKNOWN_REF' && error.status === 404)
    return unknownHere(repo, error.candidates, { cause: error, isWanted })
  if (error.code !== 'E_NO_MEMBER' || !isWanted) return error
  const { code, message, candidates } = error
  const hint = `if the hub has it: svc import hf ${repo}:${ref.quant}`
  return new CliError('notFound', message, { code, candidates, hint, cause: error })
}

/**
 * The error for an unknown repository. @param candidates others of the same namespace @param more `isWanted` is false when removing a
 * model: a hint on how to import it would be no help
 */
export const unknownHere = (
  repo: string,
  candidates: readonly string[],
  { cause, isWanted = true }: { readonly cause?: unknown; readonly isWanted?: boolean } = {}
): CliError =>
  new CliError('notFound', `there is no ${repo} here`, {
    code: 'E_UNKNOWN_REF',
    candidates,
    hint: `svc ls shows what is here${isWanted ? `; if it is on the hub: svc import hf ${repo}` : ''}`,
    cause
  })

/** The same, with the others of its namespace. `repo` is `ns/name`. */
export function unknownRepository({ namespaces }: Inventory, repo: string): CliError {
  const others = namespaces.filter(({ ns }) => ns === repo.split('/', 1)[0])
  return unknownHere(
    repo,
    others.map(({ ns, name }) => `${ns}/${name}`)
  )
}

/** Wraps a client so that errors for missing models explain how to get them. */
export function sayingWhatIsHere(client: Client): Client {
  const say = async <T>(call: Promise<T>, ref: string, isWanted = true): Promise<T> => {
    try {
      return await call
    } catch (error) {
      throw explained(error, ref, isWanted)
    }
  }
  return {
    ...client,
    // `svc rm` resolves references too, so do not suggest an import
    resolve: (ref, options) => say(client.resolve(ref, options), ref, false),
    open: (ref, options) => say(client.open(ref, options), ref),
    joinShare: (ref, options) => say(client.joinShare(ref, options), ref),
    makeView: (body, options) => say(client.makeView(body, options), body.ref),
    setPrivate: (body, options) => say(client.setPrivate(body, options), body.ref, false),
    removeModel: (model, options) =>
      say(client.removeModel(model, options), `svc:///${model.ns}/${model.name}:${model.quant ?? 'raw'}`, false),
    verify: (body, options) => say(client.verify(body, options), body.target)
  }
}
