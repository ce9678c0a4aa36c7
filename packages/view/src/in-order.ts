export { isStandingInOrder } from './standing/in-order.ts'
