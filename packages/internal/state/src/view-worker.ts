import { serveCalls } from '@svc/internal-workers'
import { isStandingInOrder } from '@svc/view/in-order'
import { type ViewCalls, viewErrors } from './view-calls.ts'

/** Most starts find all in order, and need nothing of it. */
const views = () => import('@svc/view')

serveCalls<ViewCalls>(
  {
    create: async ({ blobPaths, ...request }, { signal, progress }) =>
      (await views()).createView(
        { ...request, blobPath: (digest) => blobPaths.get(digest) ?? '' },
        { ...request, signal, onCopied: progress }
      ),
    read: async (path) => (await views()).readView(path),
    remove: async ({ path, model }) => (await views()).removeView(path, model),
    isStandingInOrder: async ({ path, key }) => isStandingInOrder(path, key),
    syncStanding: async (request, { signal, progress }) =>
      (await views()).syncStanding(request, { signal, onCopied: progress }),
    removeStanding: async ({ path, root }) => (await views()).removeStanding(path, root)
  },
  { errors: viewErrors }
)
