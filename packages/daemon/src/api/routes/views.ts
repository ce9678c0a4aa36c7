import { type RemovedView, ROUTES, type View, type ViewBody, type ViewList } from '@svc/client/protocol'
import { type ApiRoute, defineRoute, takeTime } from '../route.ts'

/** The views of the store. */
export interface ViewRooms {
  make(body: ViewBody): Promise<View>
  list(): Promise<ViewList>
  remove(path: string, ref?: string): Promise<RemovedView>
}

export const viewRoutes = ({
  views,
  needed
}: {
  readonly views: ViewRooms
  /** Rejects while state that names artifacts cannot be read. */
  readonly needed: { named(): Promise<ReadonlySet<string>> }
}): Readonly<Record<'makeView' | 'views' | 'removeView', ApiRoute>> => ({
  makeView: defineRoute(ROUTES.makeView, ({ body }, exchange) => {
    if (body.mode === 'copy') takeTime(exchange)
    return views.make(body)
  }),
  views: defineRoute(ROUTES.views, async () => {
    const { views: all } = await views.list()
    // the list is useful without this, and a collection or check reports unreadable state
    const named = await needed.named().catch(() => undefined)
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
