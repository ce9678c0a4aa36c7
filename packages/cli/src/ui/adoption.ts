import { BridgeRefusal, textOf } from '@svc/internal-bridge'
import { adoptBody } from '../adopt/body.ts'
import { type AdoptableModel, foundModels, readCaches } from '../adopt/found-models.ts'
import type { Session } from '../session.ts'
import type { PageRoute } from './page-route.ts'

/** What was listed last: the page adopts from this list. */
const listed = new WeakMap<Session, readonly AdoptableModel[]>()

const ofAllTools = async (session: Session) => foundModels(session, await readCaches(session, []), {})

/** The models of other tools on this disk. */
export const toolsHere: PageRoute = async ({ session }) => {
  const { models, warnings } = await ofAllTools(session)
  listed.set(session, models)
  return {
    models: models.map(({ found, as, quants, hereBytes, takesBytes, by }) => ({
      tool: found.tool,
      source: found.source,
      as,
      quants,
      sizeBytes: found.sizeBytes,
      hereBytes,
      takesBytes,
      sharesBlocks: by === 'reflink'
    })),
    warnings: warnings.map(({ path, message }) => `${path}: ${message}`)
  }
}

/** Adopts one of them; private unless the page says that it may be shared. */
export const adoptFound: PageRoute = async ({ session, body }) => {
  const [tool, source] = [textOf(body.tool), textOf(body.source)]
  const models = listed.get(session) ?? (await ofAllTools(session)).models
  const model = models.find(({ found }) => found.tool === tool && found.source === source)
  if (model === undefined) throw new BridgeRefusal(404, 'E_NOT_FOUND', `${tool} has no ${source} any more`)
  const { found, as } = model
  const asked = adoptBody(found, as, found.files, { private: body.private !== false })
  return session.client.adopt({ ...asked, replace: false })
}
