import { ROUTES, type TagEntry } from '@svc/client/protocol'
import { changeTagHere, type Library, listTags, type TagChange, tagEntry } from '@svc/library/parts'
import { isDigest, parseTag, type RepoId } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import { repoOf } from '../repo-of.ts'
import { defineRoute } from '../route.ts'

export type TagRoutesDeps = Pick<Library, 'repos' | 'documents' | 'needed' | 'store'>

/** The owner's tags (spec add.56). */
export function tagRoutes(deps: TagRoutesDeps) {
  const { repos, store } = deps
  const change = async (name: TagParams, index: TagChange['index']): Promise<TagEntry> => {
    const { ns, name: model, tag } = named(name)
    const digest = await changeTagHere({ ns, name: model, tag, index }, deps)
    return tagEntry(`${ns}/${model}`, tag, digest, store)
  }
  return {
    tags: defineRoute(ROUTES.tags, ({ query: { repo } }) => {
      const [ns = '', ...name] = repo?.split('/') ?? []
      return listTags(deps, repo === undefined ? undefined : repoOf({ ns, name: name.join('/') }))
    }),
    tag: defineRoute(ROUTES.tag, async ({ params }) => {
      const { ns, name, tag } = named(params)
      const state = await repos.read(ns, name)
      const digest = state?.tags.get(tag)
      if (digest !== undefined) return tagEntry(`${ns}/${name}`, tag, digest, store)
      throw new DaemonError('E_UNKNOWN_REF', `${ns}/${name} has no tag ${JSON.stringify(tag)}`, {
        candidates: [...(state?.tags.keys() ?? [])].sort()
      })
    }),
    setTag: defineRoute(ROUTES.setTag, ({ params, body: { digest } }) => {
      if (digest !== undefined && !isDigest(digest))
        throw new DaemonError('E_BAD_REQUEST', 'the field "digest" must be sha256:<64 hex>')
      return change(params, digest ?? 'current')
    }),
    removeTag: defineRoute(ROUTES.removeTag, ({ params }) => change(params, null))
  }
}

interface TagParams extends RepoId {
  readonly tag: string
}

/** @throws DaemonError `E_BAD_REQUEST`, RefError for what is no tag */
const named = ({ tag, ...repo }: TagParams): TagParams => ({ ...repoOf(repo), tag: parseTag(tag) })
