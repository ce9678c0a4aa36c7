import { type RemovedView, ROUTES, type View, type ViewBody, type ViewList } from '@svc/client/protocol'
import { type ApiRoute, defineRoute, takeTime } from '../route.ts'

/** The views of the store. */
export interface ViewRooms {
  make(body: ViewBody): Promise<View>
  list(): Promise<ViewList>
  remove(path: string): Promise<RemovedView>
}

export const viewRoutes = ({
  views
}: {
  readonly views: ViewRooms
}): Readonly<Record<'makeView' | 'views' | 'removeView', ApiRoute>> => ({
  makeView: defineRoute(ROUTES.makeView, ({ body }, exchange) => {
    if (body.mode === 'copy') takeTime(exchange)
    return views.make(body)
  }),
  views: defineRoute(ROUTES.views, () => views.list()),
  removeView: defineRoute(ROUTES.removeView, ({ body }) => views.remove(body.path))
})
