import { ROUTES } from '@svc/client/protocol'
import type { Needed, StandingViews, Views } from '@svc/library/parts'
import { folderOf } from '../../standing-folders.ts'
import { defineRoute, takeTime } from '../route.ts'

export interface ViewRoutesDeps {
  readonly views: Views
  readonly needed: Needed
  readonly standing: StandingViews
}

export const viewRoutes = ({ views, needed, standing }: ViewRoutesDeps) => ({
  makeView: defineRoute(ROUTES.makeView, ({ body }, exchange) => {
    if (body.mode === 'copy') takeTime(exchange)
    return views.make(body)
  }),
  views: defineRoute(ROUTES.views, async () => {
    const all = await views.list()
    // the list is useful without this, and a collection or check reports unreadable state
    const named: ReadonlySet<string> | undefined = await needed.named().catch(() => undefined)
    if (named === undefined) return { views: all }
    return {
      views: all.map((view) => ({
        ...view,
        needed: [view.manifestDigest, ...(view.others ?? [])].some((each) => named.has(each))
      }))
    }
  }),
  removeView: defineRoute(ROUTES.removeView, ({ body }) => views.remove(body.path, body.ref)),
  standingViews: defineRoute(ROUTES.standingViews, async () => ({ views: [...(await standing.list())] })),
  addStandingView: defineRoute(ROUTES.addStandingView, ({ body }, exchange) => {
    takeTime(exchange)
    return standing.add(folderOf(body))
  }),
  removeStandingView: defineRoute(ROUTES.removeStandingView, ({ body }, exchange) => {
    takeTime(exchange)
    return standing.remove(body.path)
  })
})
