export { EventLoop } from './event-loop.ts'
export { counter, formatMetrics, gauge, type Metric, type Sample } from './exposition.ts'
export { processMetrics } from './process.ts'
