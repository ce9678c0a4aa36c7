import { ROUTES } from '@svc/client/protocol'
import type { Needed, Views } from '@svc/library/parts'
import { defineRoute, takeTime } from '../route.ts'

export const viewRoutes = ({ views, needed }: { readonly views: Views; readonly needed: Needed }) => ({
  makeView: defineRoute(ROUTES.makeView, ({ body }, exchange) => {
    if (body.mode === 'copy') takeTime(exchange)
    return views.make(body)
  }),
  views: defineRoute(ROUTES.views, async () => {
    const { views: all } = await views.list()
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
  removeView: defineRoute(ROUTES.removeView, ({ body }) => views.remove(body.path, body.ref))
})
