; One arm builds towers of blocks on a table (blocks world with four operators).
(define (domain blocksworld-4ops)
  (:requirements :strips)
  (:predicates
    (on ?upper ?lower) (on-table ?block) (clear ?block)
    (holding ?block) (arm-empty))

  (:action pickup
    :parameters (?block)
    :precondition (and (arm-empty) (on-table ?block) (clear ?block))
    :effect (and (not (arm-empty)) (not (on-table ?block)) (not (clear ?block))
                 (holding ?block)))

  (:action putdown
    :parameters (?block)
    :precondition (and (holding ?block))
    :effect (and (not (holding ?block))
                 (arm-empty) (on-table ?block) (clear ?block)))

  (:action stack
    :parameters (?block ?underblock)
    :precondition (and (holding ?block) (clear ?underblock))
    :effect (and (not (holding ?block)) (not (clear ?underblock))
                 (arm-empty) (clear ?block) (on ?block ?underblock)))

  (:action unstack
    :parameters (?block ?underblock)
    :precondition (and (arm-empty) (clear ?block) (on ?block ?underblock))
    :effect (and (not (arm-empty)) (not (clear ?block)) (not (on ?block ?underblock))
                 (holding ?block) (clear ?underblock))))
