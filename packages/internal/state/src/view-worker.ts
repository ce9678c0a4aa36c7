import { serveCalls } from '@svc/internal-workers'
import { createView, isStandingInOrder, readView, removeStanding, removeView, syncStanding } from '@svc/view'
import { type ViewCalls, viewErrors } from './view-calls.ts'

serveCalls<ViewCalls>(
  {
    create: ({ blobPaths, ...request }, { signal, progress }) =>
      createView(
        { ...request, blobPath: (digest) => blobPaths.get(digest) ?? '' },
        { ...request, signal, onCopied: progress }
      ),
    read: (path) => readView(path),
    remove: ({ path, model }) => removeView(path, model),
    isStandingInOrder: async ({ path, key }) => isStandingInOrder(path, key),
    syncStanding: (request, { signal, progress }) => syncStanding(request, { signal, onCopied: progress }),
    removeStanding: ({ path, root }) => removeStanding(path, root)
  },
  { errors: viewErrors }
)
