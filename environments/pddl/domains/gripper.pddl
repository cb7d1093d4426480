; A robot with two grippers carries balls between rooms (IPC 1998, STRIPS).
(define (domain gripper-strips)
  (:requirements :strips)
  (:predicates
    (room ?place) (ball ?thing) (gripper ?hand)
    (at-robby ?place) (at ?thing ?place)
    (free ?hand) (carry ?thing ?hand))

  (:action move
    :parameters (?from ?to)
    :precondition (and (room ?from) (room ?to) (at-robby ?from))
    :effect (and (not (at-robby ?from)) (at-robby ?to)))

  (:action pick
    :parameters (?obj ?room ?gripper)
    :precondition (and (ball ?obj) (room ?room) (gripper ?gripper)
                       (at-robby ?room) (at ?obj ?room) (free ?gripper))
    :effect (and (not (at ?obj ?room)) (not (free ?gripper))
                 (carry ?obj ?gripper)))

  (:action drop
    :parameters (?obj ?room ?gripper)
    :precondition (and (ball ?obj) (room ?room) (gripper ?gripper)
                       (at-robby ?room) (carry ?obj ?gripper))
    :effect (and (not (carry ?obj ?gripper))
                 (at ?obj ?room) (free ?gripper))))
