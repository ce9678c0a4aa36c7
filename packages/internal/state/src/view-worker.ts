import { serveCalls } from '@svc/internal-workers'
import { createView, readView, removeView } from '@svc/view'
import { type ViewCalls, viewErrors } from './view-calls.ts'

serveCalls<ViewCalls>(
  {
    create: ({ blobPaths, ...request }, { signal, progress }) =>
      createView(
        { ...request, blobPath: (digest) => blobPaths.get(digest) ?? '' },
        { ...request, signal, onCopied: progress }
      ),
    read: (path) => readView(path),
    remove: ({ path, model }) => removeView(path, model)
  },
  { errors: viewErrors }
)
